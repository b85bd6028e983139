--- The drawing that all clients share (tests/data/rows of the repository).

local draw = require('treelined.draw')
local f = require('fixture')
local json = require('treelined.json')

return {
  {
    -- Each client once drew rows of its own tests only, so their marks and words stood at other places.
    'the rows of the fixture are drawn as in all clients',
    function()
      local path = f.root .. '/../../tests/data/rows/left.json'
      local fixture = json.decode(table.concat(vim.fn.readfile(path), '\n'))
      local drawn = vim.tbl_map(function(node)
        -- The mark of the active path and two spaces come first.
        return vim.fn.strcharpart(draw.row(node, { render = 'unicode' }), 3)
      end, fixture.nodes)
      f.equal(drawn, fixture.lines)
    end,
  },
}
