--- Formats times of the daemon for people.

local M = {}

--- Returns the seconds since 1970 of an ISO 8601 time in UTC; nil for any other text.
local function seconds(iso)
  local year, month, day, hour, min, sec = iso:match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return nil
  end
  local utc = { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
  utc.isdst = false
  local known = os.time(utc)
  local zone = os.date('!*t', known)
  zone.isdst = false
  return known + os.difftime(known, os.time(zone))
end

--- Returns an ISO 8601 time in UTC as local date and time. Any other text is returned unchanged.
---@param iso string
---@return string
function M.text(iso)
  local known = seconds(iso)
  return known and os.date('%Y-%m-%d %H:%M', known) --[[@as string]] or iso
end

local UNITS = { { 60, 'm' }, { 3600, 'h' }, { 86400, 'd' }, { 604800, 'w' }, { 31536000, 'y' } }

--- Returns the age of an ISO 8601 time in UTC, such as `5m` (protocol.md §1.5). Any other text is returned unchanged.
---@param iso string
---@return string
function M.age(iso)
  local known = seconds(iso)
  if not known then
    return iso
  end
  local passed, age = os.time() - known, 'now'
  for _, unit in ipairs(UNITS) do
    if passed >= unit[1] then
      age = math.floor(passed / unit[1]) .. unit[2]
    end
  end
  return age
end

return M
