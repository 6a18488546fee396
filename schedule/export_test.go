package schedule

// OutcomeOf exports outcomeOf.
var OutcomeOf = outcomeOf
