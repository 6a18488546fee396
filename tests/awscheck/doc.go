// Package awscheck checks the requests of end-to-end tests to a local AWS, because emulators accept requests that AWS
// rejects. A proxy in front of the emulator validates each request with the service models of botocore (package model)
// and with documented rules that the models do not contain (package rules). It evaluates requests of functions against
// the policies of their deployed roles (package iam). The proxy changes neither requests nor responses.
package awscheck
