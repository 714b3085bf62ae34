-- What every script begins with: where the log of a user stands, and what a reader has not read.
--
-- A change has the id COUNT-TOKEN: the count rises by one, the token is random. So two logs that
-- went different ways, as after a failover, never agree about an id.
local LOG, META, OBJECTS, PINS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local PAGE = 1000

-- The id up to which the rows of META have everything; the log goes on from there.
local function first_of()
  return redis.call('HGET', META, 'at') or '0-0'
end

local function last_of()
  local newest = redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1)
  return newest[1] and newest[1][1] or first_of()
end

-- Where the log stands; then, for a reader whose id is not in this log, where it begins, with all
-- rows up to there; then the next changes.
local function since(at)
  local last = last_of()
  if last == at then
    return {last, false, false, {}}
  end
  local first = first_of()
  if at == first or redis.call('XRANGE', LOG, at, at)[1] then
    return {last, false, false, redis.call('XRANGE', LOG, '(' .. at, '+', 'COUNT', PAGE)}
  end
  local rows = redis.call('HGET', META, 'rows')
  return {last, first, rows, redis.call('XRANGE', LOG, '-', '+', 'COUNT', PAGE)}
end

-- All keys of a user expire together.
local function renew(milliseconds)
  for _, key in ipairs({LOG, META, OBJECTS, PINS}) do
    redis.call('PEXPIRE', key, milliseconds)
  end
end

-- A stored object begins with a byte: 0, and it follows as it is, or 1, its length, and a frame.
local function length(object)
  if string.byte(object, 1) == 0 then
    return #object - 1
  end
  return struct.unpack('<I4', object, 2)
end

-- Hashes and objects, in turn, from an argument on.
local function add_objects(from)
  local bytes = 0
  for at = from, #ARGV, 2 do
    if redis.call('HSETNX', OBJECTS, ARGV[at], ARGV[at + 1]) == 1 then
      bytes = bytes + length(ARGV[at + 1])
    end
  end
  redis.call('HINCRBY', META, 'bytes', bytes)
end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function has_pin()
  local moment, has = now(), false
  local pins = redis.call('HGETALL', PINS)
  for at = 1, #pins, 2 do
    if tonumber(pins[at + 1]) > moment then
      has = true
    else
      redis.call('HDEL', PINS, pins[at])
    end
  end
  return has
end
