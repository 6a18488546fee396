package schedule

// OutcomeOf is for tests.
var OutcomeOf = outcomeOf
