// Package scan reads all instances of a hub.
package scan

import (
	"fmt"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Version is an orchestration in one version.
type Version struct{ Orchestration, Version string }

// EachInstance calls do for each instance of a list. It reads the list in one pass, so that a status change does not
// hide an instance.
func EachInstance(
	list func(client.Paging) (client.Page[client.Status], error), p *cli.Progress, do func(s *client.Status),
) error {
	read := 0
	for at := (client.Paging{Limit: client.MaxPageSize}); ; {
		p.Set(fmt.Sprintf("%d instances read", read))
		page, err := list(at)
		if err != nil {
			return err
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		read += len(page.Items)
		if at.Cursor = page.NextCursor; at.Cursor == "" {
			return nil
		}
	}
}
