package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/codec"
)

// onPaper is a fake key service. In production, use package codec/kmskeys with AWS KMS.
type onPaper struct{}

func (onPaper) GenerateDataKey(context.Context) (key, wrapped []byte, err error) {
	return make([]byte, 32), []byte("the first"), nil
}

func (onPaper) UnwrapDataKey(context.Context, []byte) ([]byte, error) { return make([]byte, 32), nil }

func greetPatient(_ *perdure.OrchestrationContext, name string) (string, error) {
	return "Good morning, " + name, nil
}

// Payloads are compressed and encrypted. A client with the codec reads them. A client without it gets a reference to
// the encoded payload.
func ExampleCodec() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "greet-patient", greetPatient)
	sealed := codec.Chain("ward-2026", codec.Zstd(), codec.Envelope("ward-2026", onPaper{}))

	ctx := context.Background()
	hub, stop := serveSealed(r, sealed)
	defer stop()
	with := client.New(hub, client.WithCodec(sealed))
	id := must(with.Start(ctx, "greet-patient", "Ada"))
	fmt.Println(must(client.Result[string](must(with.Wait(ctx, id)))))
	fmt.Println(must(client.New(hub).Status(ctx, id)).EncodedOutput.Codec)
	// Output:
	// Good morning, Ada
	// ward-2026
}
