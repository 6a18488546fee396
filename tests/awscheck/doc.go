// Package awscheck checks the requests of end-to-end tests to a local AWS, because emulators accept requests that AWS
// rejects. A proxy in front of the emulator validates each request with the service models of botocore (package model)
// and with documented rules that the models do not contain (package rules). It evaluates requests of functions against
// the policies of their deployed roles (package iam). The proxy changes neither requests nor responses.
//
// It does not check the requests of the emulator, such as receives of event source mappings and messages of schedules.
// It does not check what depends on stored data, such as the size of an updated item or an expired receipt handle.
// Requests of the root user, whose credentials the clients of the tests and the command perdure have, need no
// permissions.
package awscheck
