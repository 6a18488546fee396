// Package cron parses cron expressions and computes the times that match them.
//
// It supports two syntaxes: the five fields of crontab(5), and the six fields of cron(…) in EventBridge Scheduler. Both
// have the same building blocks:
//
//   - every value
//     5        one value; months and days of the week also have names, such as JAN or MON
//     1-5      a range; only a range of days of the week may wrap around: FRI-MON
//     */10     every tenth value, from the first one
//     5/10     every tenth value, from 5
//     10-40/10 every tenth value of a range
//     1,3,5    a list
//
// The day of the month may also be L (the last day), LW (the last weekday), or 15W (the weekday nearest to the 15th, in
// the same month). The day of the week may also be 5L (the last one of the month) or 5#3 (the third one of the month).
//
// The package works on wall-clock time and knows nothing about time zones.
//
// It does not wrap a library: no maintained one supports both syntaxes. Parsing is most of the work, and a wrapper
// would have to parse every field itself in order to correct ranges that end on Sunday and to reject reversed ranges.
package cron
