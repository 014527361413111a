-- Requests for wrk, exactly as the harness's adapter sends them: wrk ... -s wrk.lua URL -- MODE THREADS NOW_MS [FILE]
--   healthz   what wrk can do at most
--   create    POST /v1/jobs, a new biz_id each, due in a day
--   cancel    POST /v1/jobs/ID/cancel, the ids of FILE once each, spread over the threads
-- Prints a line "used up" per thread that ran out of ids, and at the end one JSON object.
local ffi = require("ffi")
ffi.cdef("typedef struct { long s, ns; } wrk_time; int clock_gettime(int clock, wrk_time* time);")
local time = ffi.new("wrk_time")
local MONOTONIC = 1

local function seconds()
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

local DAY_MS = 86400000

local function creates(now_ms)
  local due = now_ms + DAY_MS
  local head = string.format("POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n",
                             wrk.headers["Host"])
  local form = string.format('{"biz_type":"bench","biz_id":"wrk-%d-%%d","action_time":"%s.%03dZ","attribute":'
                             .. '{"run":"wrk-%d","i":%%d,"due":%s,"pad":"%s"}}',
                             number, os.date("!%Y-%m-%dT%H:%M:%S", math.floor(due / 1000)), due % 1000, number,
                             string.format("%.0f", due), string.rep("x", 140))
  return function()
    local body = form:format(sent, sent)
    return head .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
  end
end

local function cancels(file, thread_count)
  local ids, line = {}, 0
  for id in io.lines(file) do
    line = line + 1
    if line % thread_count == number - 1 then table.insert(ids, id) end
  end
  local form = string.format("POST /v1/jobs/%%s/cancel HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                             .. "Content-Length: 0\r\n\r\n", wrk.headers["Host"])
  return function() return ids[sent] and form:format(ids[sent]) end
end

function init(args)
  local mode, thread_count, now_ms, file = args[1], tonumber(args[2]), tonumber(args[3]), args[4]
  local harmless = wrk.format("GET", "/healthz")
  local next_request = mode == "create" and creates(now_ms) or mode == "cancel" and cancels(file, thread_count)
    or function() return harmless end
  local is_first, is_used_up = true, false
  sent, first, last = 0, 0, 0

  function request()
    if is_first then -- wrk parses the first one, and does not send it everywhere
      is_first = false
      return harmless
    end
    if is_used_up then return harmless end
    sent = sent + 1
    local text = next_request()
    local now = seconds()
    if first == 0 then first = now end
    if text then
      last = now
      return text
    end
    sent, is_used_up = sent - 1, true
    io.write("used up\n")
    io.flush()
    wrk.thread:stop()
    return harmless
  end
end

function done(summary, latency)
  local sent, rate, errors = 0, 0, summary.errors
  for _, thread in ipairs(threads) do -- each by its own time, as one may run out of ids before the other
    sent = sent + thread:get("sent")
    rate = rate + thread:get("sent") / math.max(thread:get("last") - thread:get("first"), 1e-6)
  end
  print(string.format('{"requests":%d,"sent":%d,"seconds":%.6f,"rate":%.1f,"p50_ms":%.3f,"p99_ms":%.3f,"connect":%d,'
                      .. '"read":%d,"write":%d,"status":%d,"timeout":%d}',
                      summary.requests, sent, summary.duration / 1e6, rate, latency:percentile(50) / 1000,
                      latency:percentile(99) / 1000, errors.connect, errors.read, errors.write, errors.status,
                      errors.timeout))
end
