std = 'luajit'
globals = { 'vim' }
max_line_length = 120
exclude_files = { 'lua/treelined/types.lua', 'node_modules', '.newest' }
-- A method that leaves its table alone is still a method.
self = false
