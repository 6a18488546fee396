// Package guides contains the code of the guides in this directory. A test compares each Go block with the files of
// this package.
package guides
