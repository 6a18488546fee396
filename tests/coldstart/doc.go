// Package coldstart has the tests of what a function costs before its first record: the size of its binary, and its
// time to Lambda's first "next".
package coldstart
