-- Submits equal small jobs, with the token from the environment.
local headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. os.getenv("SEAWAY_TOKEN") }
local body = '{"name":"load","resources":{"cpu":"500m","memory":"1GB","gpus":1,"gpu_memory":"4GB","gpu_cores":"10%"},"expected_duration":"'
  .. os.getenv("RUNS") .. '"}'

request = function()
  return wrk.format("POST", "/api/v1/jobs", headers, body)
end
