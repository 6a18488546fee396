package cron

const (
	daysPerWeek = 7

	// firstYear and lastYear are the limits of EventBridge Scheduler.
	firstYear = 1970
	lastYear  = 2199
)

var (
	minuteField = field{name: "minute", min: 0, max: 59, digits: 2}
	hourField   = field{name: "hour", min: 0, max: 23, digits: 2}
	dayField    = field{name: "day", min: 1, max: 31, digits: 2}
	monthField  = field{name: "month", min: 1, max: 12, digits: 2, names: monthNames}
	yearField   = field{name: "year", min: firstYear, max: lastYear, digits: 4, base: firstYear}

	// crontabWeekday also accepts 7 for Sunday.
	crontabWeekday     = field{name: "day of week", min: 0, max: 6, digits: 2, names: weekdayNames(0), weekdays: true}
	eventBridgeWeekday = field{
		name: "day of week", min: 1, max: 7, digits: 2, names: weekdayNames(1), base: 1, weekdays: true,
	}
)

var monthNames = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11,
	"dec":     12,
	"january": 1, "february": 2, "march": 3, "april": 4, "june": 6, "july": 7, "august": 8, "september": 9,
	"october":  10,
	"november": 11, "december": 12,
}

// weekdayNames returns the names of the days of a week whose Sunday has the given number.
func weekdayNames(sunday int) map[string]int {
	names := map[string]int{}
	for i, day := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		names[day], names[day[:3]] = sunday+i, sunday+i
	}
	return names
}

// shorthands are the expressions that have a name.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@hourly": "0 * * * *",
}
