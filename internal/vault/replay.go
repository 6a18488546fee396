package vault

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Replay opens the sealed payloads of one execution for its code, and compares them: it implements replay.Seals.
type Replay struct {
	vault *Vault
	about perdure.PayloadInfo
	ctx   context.Context //nolint:containedctx // that of the invocation in which the code runs: replay knows of none
}

// ForReplay is a Replay of an execution, whose calls are made within ctx.
func (v *Vault) ForReplay(ctx context.Context, about perdure.PayloadInfo) Replay {
	return Replay{vault: v, about: about, ctx: ctx}
}

// Within has the next calls made within another context.
func (r *Replay) Within(ctx context.Context) { r.ctx = ctx }

// Open implements replay.Seals.
func (r *Replay) Open(of history.EventPayload, ahead []history.EventPayload) (json.RawMessage, error) {
	if len(ahead) > 0 {
		r.vault.fetch(r.ctx, &of, ahead)
	}
	return r.vault.Open(r.ctx, r.of(&of), *of.Payload)
}

// Same implements replay.Seals.
func (r *Replay) Same(of history.EventPayload, doc json.RawMessage) (bool, error) {
	return r.vault.Same(r.ctx, r.of(&of), *of.Payload, doc)
}

func (r *Replay) of(p *history.EventPayload) perdure.PayloadInfo {
	about := r.about
	about.Kind, about.Name = p.Kind, p.Name
	return about
}
