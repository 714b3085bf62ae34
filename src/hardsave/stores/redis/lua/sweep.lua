-- Remove objects if the log still stands where they were found to be of no use, and no pin holds
-- them: id, hashes.
if has_pin() then
  return {'pinned'}
end
if last_of() ~= ARGV[1] then
  return {'moved'}
end
local count, bytes, kept = 0, 0, 0
for at = 2, #ARGV do
  local object = redis.call('HGET', OBJECTS, ARGV[at])
  if object then
    redis.call('HDEL', OBJECTS, ARGV[at])
    count, bytes, kept = count + 1, bytes + length(object), kept + #object
  end
end
redis.call('HINCRBY', META, 'bytes', -bytes)
return {'swept', count, bytes, kept}
