package tasks

// Waiters returns the number of coroutines that wait for a task.
func Waiters(t *Task) int { return len(t.waiters) }

// ScopeSize returns the numbers of scopes, tasks and waiting coroutines in the scope of a task.
func ScopeSize(t *Task) (scopes, tasks, waiting int) {
	m := t.scope.members
	return len(m.scopes), len(m.tasks), len(m.waiting)
}
