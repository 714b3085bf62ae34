-- What a reader has not read: id.
return since(ARGV[1])
