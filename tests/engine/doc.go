// Package engine runs the scenarios through the whole engine: in virtual time, with crashes, and with several builds of
// code.
package engine
