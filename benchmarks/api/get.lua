-- Requests the paths in the file that the environment names, one after the other.
local headers = { ["Authorization"] = "Bearer " .. os.getenv("SEAWAY_TOKEN") }
local paths = {}
for line in io.lines(os.getenv("PATHS")) do
  paths[#paths + 1] = line
end
local at = 0

request = function()
  at = at % #paths + 1
  return wrk.format("GET", paths[at], headers)
end
