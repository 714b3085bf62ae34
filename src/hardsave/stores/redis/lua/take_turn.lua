-- Take a turn that is free, or whose holder is known to be gone: mine, that of the holder. Who has
-- it then. (All three scripts of turns: KEYS are the turn and its note.)
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[2] then
  return holder
end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
