// Package logevent names the events that perdure logs. Every log line of level info or above has one of these constants
// in its attribute "event", so that alarms and searches do not depend on messages:
//
//	log.InfoContext(ctx, "instance paused", "event", logevent.InstancePaused, "instance", id)
//
// A name is <subject>.<past participle or state>. Names are stable, but messages may change.
// docs/reference/log-events.md is generated from this package and from the calls that use it.
package logevent
