package names

import (
	"fmt"
	"slices"
)

// Fact lists the calls, registrations and definitions of a package and of the packages that it imports.
type Fact struct {
	Calls, Registered []entry
	// Defined are the calls of DefineActivity.
	Defined []entry
	// Reported are the positions of calls that one of the packages has reported as Misfit.
	Reported []string
}

// AFact marks Fact as a fact.
func (*Fact) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (f *Fact) String() string {
	return fmt.Sprintf("%d calls, %d registered, %d defined", len(f.Calls), len(f.Registered), len(f.Defined))
}

// isRegistered reports whether the target of a call is registered, or may be registered by an unknown registration.
func (f *Fact) isRegistered(c entry) bool {
	if c.Kind == anOperation && f.mayHaveAny(c.Entity) ||
		c.Kind == anActivity && c.Name != "" && f.isElsewhere(c.Name) {
		return true
	}
	return slices.ContainsFunc(f.Registered, func(r entry) bool {
		switch {
		case r.Kind != c.Kind || r.Entity != c.Entity && f.isEntity(c.Entity):
			return false
		case c.Func != "":
			return r.Func == c.Func || r.Func == ""
		case r.ByRef:
			return f.isDefined(c.Name)
		}
		return r.Name == c.Name || r.Name == ""
	})
}

// similar returns a registered name that is similar to the name of a call.
func (f *Fact) similar(c entry) string {
	for _, r := range f.Registered {
		if r.Kind == c.Kind && (r.Entity == c.Entity || !f.isEntity(c.Entity)) && c.Name != "" &&
			editDistance(c.Name, r.Name) <= 1+len(c.Name)/6 {
			return r.Name
		}
	}
	return ""
}

// isDefined reports whether a reference has or may have the name.
func (f *Fact) isDefined(name string) bool {
	return slices.ContainsFunc(f.Defined, func(def entry) bool { return def.Name == name || def.Name == "" })
}

// isElsewhere reports whether another program registers the activity.
func (f *Fact) isElsewhere(name string) bool {
	return slices.ContainsFunc(f.Defined, func(def entry) bool { return def.Name == name && def.Elsewhere })
}

// mayHaveAny reports whether an entity may have any operation, because its name or the name of a registered entity is
// not constant.
func (f *Fact) mayHaveAny(entity string) bool {
	return entity == "" || slices.ContainsFunc(f.Registered, func(r entry) bool {
		return r.Kind == anEntity && r.Name == ""
	})
}

// isEntity reports whether an entity with the name is registered.
func (f *Fact) isEntity(name string) bool {
	return slices.ContainsFunc(f.Registered, func(r entry) bool { return r.Kind == anEntity && r.Name == name })
}

// editDistance returns the number of characters to change, insert or delete.
func editDistance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		before := row[0]
		row[0]++
		for j := range len(to) {
			changed := before
			if from[i] != to[j] {
				changed++
			}
			before, row[j+1] = row[j+1], min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
