-- Which of the given hashes are not stored, by their places.
local found = {}
for at = 1, #ARGV do
  if redis.call('HEXISTS', OBJECTS, ARGV[at]) == 0 then
    found[#found + 1] = at
  end
end
return found
