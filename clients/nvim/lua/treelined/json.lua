--- Encodes and decodes the JSON of the protocol.
---
--- Neovim's decoder decodes all JSON, but its encoder is used only for strings. This module encodes the rest, because
--- the daemon stores the bytes that it receives, and Neovim's encoder writes `a\/b`, rounds numbers to 14 digits and
--- accepts invalid UTF-8.

local utf8 = require('treelined.utf8')

local M = {}

--- A table that is nested deeper is treated as a table that contains itself.
local MAX_DEPTH = 1000

local empty_object = getmetatable(vim.empty_dict())

local function fail(path, why)
  error({ field = path == '' and 'params' or path:sub(2), reason = why }, 0)
end

local function encode_string(value, path)
  if not utf8.is_valid(value) then
    fail(path, 'is not UTF-8')
  end
  -- Neovim's encoder would escape slashes, so it only gets the text between them.
  local out, from = {}, 1
  while true do
    local slash = value:find('/', from, true)
    out[#out + 1] = vim.json.encode(value:sub(from, (slash or 0) - 1)):sub(2, -2)
    if not slash then
      return '"' .. table.concat(out, '/') .. '"'
    end
    from = slash + 1
  end
end

local function encode_number(value, path)
  if value ~= value or value == math.huge or value == -math.huge then
    fail(path, 'is not a finite number')
  end
  if value % 1 == 0 and math.abs(value) < 2 ^ 63 then
    return ('%d'):format(value)
  end
  for precision = 15, 17 do
    local text = ('%.' .. precision .. 'g'):format(value)
    if tonumber(text) == value then
      return text
    end
  end
end

local encode_value

local function encode_table(value, path, depth, out)
  if depth > MAX_DEPTH then
    fail(path, 'is nested too deeply')
  end
  local count = 0
  for _ in pairs(value) do
    count = count + 1
  end
  if #value == count and (count > 0 or getmetatable(value) ~= empty_object) then
    out[#out + 1] = '['
    for index, item in ipairs(value) do
      out[#out + 1] = index > 1 and ',' or ''
      encode_value(item, path .. '.' .. index, depth + 1, out)
    end
    out[#out + 1] = ']'
    return
  end
  local names = {}
  for name in pairs(value) do
    if type(name) ~= 'string' then
      fail(path, 'mixes a list and named members, or is a list with holes')
    end
    names[#names + 1] = name
  end
  -- The names are sorted so that equal tables have equal bytes: the daemon recognizes a retry by its bytes.
  table.sort(names)
  out[#out + 1] = '{'
  for index, name in ipairs(names) do
    out[#out + 1] = index > 1 and ',' or ''
    out[#out + 1] = encode_string(name, path) .. ':'
    encode_value(value[name], path .. '.' .. name, depth + 1, out)
  end
  out[#out + 1] = '}'
end

function encode_value(value, path, depth, out)
  local kind = type(value)
  if kind == 'string' then
    out[#out + 1] = encode_string(value, path)
  elseif kind == 'number' then
    out[#out + 1] = encode_number(value, path)
  elseif kind == 'boolean' then
    out[#out + 1] = tostring(value)
  elseif kind == 'table' then
    encode_table(value, path, depth, out)
  elseif value == vim.NIL then
    out[#out + 1] = 'null'
  else
    fail(path, 'is a ' .. kind)
  end
end

--- Encodes a value. The members of objects are sorted by name.
---
--- `vim.NIL` is null, `{}` an empty list, `vim.empty_dict()` an empty object.
---@param value any
---@return string|nil json
---@return {field: string, reason: string}|nil why it cannot be encoded
function M.encode(value)
  local out = {}
  local ok, why = pcall(encode_value, value, '', 0, out)
  if ok then
    return table.concat(out), nil
  elseif type(why) == 'table' then
    return nil, why
  end
  error(why, 0)
end

--- Replaces unpaired surrogate escapes by U+FFFD. JSON allows such escapes, but Neovim's decoder fails on them.
local function mend_surrogates(text)
  local out, from, at = {}, 1, 1
  while true do
    at = text:find('\\', at, true)
    if not at then
      break
    end
    local code = tonumber(text:match('^u(%x%x%x%x)', at + 1) or '', 16) or 0
    local low = tonumber(text:match('^\\u(%x%x%x%x)', at + 6) or '', 16) or 0
    if code >= 0xd800 and code <= 0xdbff and low >= 0xdc00 and low <= 0xdfff then
      at = at + 12
    elseif code >= 0xd800 and code <= 0xdfff then
      out[#out + 1] = text:sub(from, at - 1) .. '\\ufffd'
      at = at + 6
      from = at
    else
      at = at + 2
    end
  end
  return table.concat(out) .. text:sub(from)
end

--- Decodes a text. Null members of objects are left out. An empty object becomes `vim.empty_dict()`.
---@param text string
---@return any value nil if it cannot be decoded
---@return string|nil why
function M.decode(text)
  local options = { luanil = { object = true } }
  local ok, value = pcall(vim.json.decode, text, options)
  if not ok then
    ok, value = pcall(vim.json.decode, mend_surrogates(text), options)
  end
  if ok then
    return value, nil
  end
  return nil, value
end

return M
