-- Add a change to the log if it still stands where the change was decided:
-- id, id of the change, change, time to live, how many hashes it requires, these, new objects.
if last_of() ~= ARGV[1] then -- it may be this very change that came meanwhile: a lost reply
  return {'moved', since(ARGV[1])}
end
local gone, first = 0, ''
for at = 6, 5 + ARGV[5] do
  if redis.call('HEXISTS', OBJECTS, ARGV[at]) == 0 then
    gone = gone + 1
    first = first == '' and ARGV[at] or first
  end
end
if gone > 0 then
  return {'gone', gone, first}
end
add_objects(6 + ARGV[5])
redis.call('XADD', LOG, ARGV[2], 'change', ARGV[3])
renew(ARGV[4])
return {'appended'}
