--- Times of the daemon, for people.

local M = {}

--- Returns an ISO 8601 time of UTC as local date and time; another text as it is.
---@param iso string
---@return string
function M.text(iso)
  local year, month, day, hour, min, sec = iso:match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return iso
  end
  local utc = { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
  utc.isdst = false
  local seconds = os.time(utc)
  local zone = os.date('!*t', seconds)
  zone.isdst = false
  return os.date('%Y-%m-%d %H:%M', seconds + os.difftime(seconds, os.time(zone))) --[[@as string]]
end

return M
