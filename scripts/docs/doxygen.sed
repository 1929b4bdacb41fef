# Makes the comments of a header those of Doxygen.
1d
/clang-format/d
# The first comment is about the file, and so is each that begins with a title.
2s#^/\*#/** \\file\n *#
/^\/\*$/ {
	N
	N
	s#^/\*\n \* ([A-Z][a-z ]+)\n( \*/?)$#/** \\file\n * \\par \1\n\2#
}
s#<id>#ID#g
# What is indented there, as tables and examples are, stays as it is.
s#^ \*   # *       #
s#^([[:space:]]*)/\*([ \n]|$)#\1/**\2#
s#([;,][[:space:]]+)/\* #\1/**< #
# lockworks.h says once what these do in all locks.
s#^static inline void lw_\w+_lock\(#/** Waits until the lock is free, and acquires it. */\n&#
s#^static inline bool lw_\w+_trylock\(#/** Acquires the lock if that needs no waiting. Returns whether it did. */\n&#
s#^static inline void lw_\w+_unlock\(#/** Releases the lock, which the calling thread must hold. */\n&#
