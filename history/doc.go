// Package history holds the events of an orchestration and their encoding: the one format that outlives every release.
//
// An execution's history is a gapless sequence of events, numbered from 1. Some are inputs (an activity completed, a
// timer fired), some are decisions of the orchestration (an activity scheduled, a timer created), and a few mark where
// things begin and end. Replaying the inputs through the same code must give the same decisions.
//
// The format only grows: kinds and fields are added, never renamed, and golden files hold what older releases wrote.
// The package imports nothing of this module.
package history
