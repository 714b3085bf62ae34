-- Store objects ahead of their batch: pin, microseconds, time to live, objects.
redis.call('HSET', PINS, ARGV[1], string.format('%.0f', now() + ARGV[2]))
add_objects(4)
renew(ARGV[3])
