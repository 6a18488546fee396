// Package cron parses cron expressions and computes the times that match them.
//
// It supports the five fields of crontab(5) and the six fields of cron(…) in EventBridge Scheduler. Both syntaxes have
// the same building blocks:
//
//	5        one value; months and days of the week also have names, such as JAN or MON
//	*        every value
//	1-5      a range; only a range of days of the week may wrap around, such as FRI-MON
//	*/10     every tenth value, from the first one
//	5/10     every tenth value, from 5
//	10-40/10 every tenth value of a range
//	1,3,5    a list
//
// The day of the month can also be L (the last day), LW (the last weekday), or 15W (the weekday nearest to the 15th in
// the same month). The day of the week can also be 5L (its last occurrence in the month) or 5#3 (its third occurrence
// in the month).
//
// The package uses wall-clock time and does not handle time zones.
//
// No maintained library supports both syntaxes. A wrapper would have to parse every field to correct ranges that end on
// Sunday and to reject reversed ranges.
package cron
