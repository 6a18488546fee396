package registry

import "strings"

// EntityMark is the prefix of the name of an entity's orchestration. It also separates the entity's name and key in its
// instance ID.
const EntityMark = "@"

// HasKey reports whether a name is invalid for an entity because it contains EntityMark.
func HasKey(entity string) bool { return strings.Contains(entity, EntityMark) }
