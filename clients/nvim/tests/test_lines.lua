--- Lines, UTF-8, and text that is safe in a buffer.

local f = require('fixture')
local json = require('treelined.json')
local lines = require('treelined.lines')
local utf8 = require('treelined.utf8')
local equal = f.equal

return {
  {
    'lines end only at line feeds, for every division into chunks',
    function()
      local bytes = 'one\r\n\ntwo\226\128\168three 😀\226\128\169\nrest'
      for size = 1, #bytes do
        local found = {}
        local push = lines.splitter(function(line)
          found[#found + 1] = line
        end)
        for from = 1, #bytes, size do
          push(bytes:sub(from, from + size - 1))
        end
        equal(found, { 'one\r', '', 'two\226\128\168three 😀\226\128\169' }, 'chunks of ' .. size)
      end
    end,
  },
  {
    'UTF-8 is validated by Unicode table 3-7',
    function()
      for _, good in ipairs({
        '',
        'a',
        'é',
        '€',
        '😀',
        '\237\159\191',
        '\244\143\191\191',
        '\0',
      }) do
        equal(utf8.is_valid(good), true, good)
      end
      local bad = {
        '\128',
        '\192\128',
        '\193\191',
        '\224\159\191',
        '\237\160\128',
        '\240\143\191\191',
        '\244\144\128\128',
        '\245\128\128\128',
        '\226\130',
        'a\226\130',
        '\240\159\152',
        '\255',
        'é\169',
      }
      for _, text in ipairs(bad) do
        equal(utf8.is_valid(text), false, vim.inspect(text))
      end
    end,
  },
  {
    'sanitized text contains no line break, control or mark of direction',
    function()
      equal(utf8.line('a\nb\r\27[31m\0\t\127'), 'a␊b␍␛[31m␀␉␡')
      equal(
        utf8.line('x\194\155y\226\128\174z\226\129\166\216\156\226\128\143'),
        'x�y�z���'
      )
      -- These are separators, tags and annotations.
      equal(
        utf8.line('\226\128\168\226\129\170\239\191\185\243\160\129\129é\243\160\132\128'),
        '����é\243\160\132\128'
      )
      equal(utf8.line('é € 😀 · ‐ ⁰'), 'é € 😀 · ‐ ⁰')
      equal(utf8.lines('one\r\n\ttwo\27\n'), { 'one', '\ttwo␛', '' })
    end,
  },
  {
    'values are encoded exactly, and equal values equally',
    function()
      local value = {
        b = { 1, -0.5, 1e300, 2 ^ 53 - 1, true, vim.NIL },
        a = 'é/\\"\n',
        empty = {},
        object = vim.empty_dict(),
      }
      local expected =
        [[{"a":"é/\\\"\n","b":[1,-0.5,1e+300,9007199254740991,true,null],"empty":[],"object":{}}]]
      equal(json.encode(value), expected)
      equal(json.encode(json.decode(expected)), expected)
      equal(json.encode(''), '""')
      equal(json.encode('//'), '"//"')
    end,
  },
}
