package kmskeys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
	"github.com/perdure/perdure/codec/kmskeys"
)

// paper is a fake KMS that records the keys it has generated.
type paper struct {
	made  int
	keys  map[string][]byte
	about map[string]map[string]string
	fails error
}

func (p *paper) GenerateDataKey(
	_ context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options),
) (*kms.GenerateDataKeyOutput, error) {
	if p.fails != nil {
		return nil, p.fails
	}
	if in.KeySpec != types.DataKeySpecAes256 || *in.KeyId != "alias/orders" {
		return nil, fmt.Errorf("unexpected request of %s for %s", in.KeySpec, *in.KeyId)
	}
	p.made++
	wrapped := fmt.Sprintf("%s, number %d", *in.KeyId, p.made)
	p.keys[wrapped], p.about[wrapped] = bytes.Repeat([]byte{byte(p.made)}, 32), in.EncryptionContext
	return &kms.GenerateDataKeyOutput{Plaintext: p.keys[wrapped], CiphertextBlob: []byte(wrapped)}, nil
}

func (p *paper) Decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	if p.fails != nil {
		return nil, p.fails
	}
	key, ok := p.keys[string(in.CiphertextBlob)]
	if !ok || !maps.Equal(p.about[string(in.CiphertextBlob)], in.EncryptionContext) {
		return nil, &types.InvalidCiphertextException{Message: aws.String("not of this context")}
	}
	return &kms.DecryptOutput{Plaintext: key}, nil
}

func newPaper() *paper {
	return &paper{keys: map[string][]byte{}, about: map[string]map[string]string{}}
}

// A process can decrypt the payloads of another one. Each process calls KMS once.
func TestEnvelope_keysOfKMS_decryptsInOtherProcess(t *testing.T) {
	t.Parallel()
	service := newPaper()
	writer := codec.Envelope("orders-2026", kmskeys.New(service, "alias/orders", "orders"))
	reader := codec.Envelope("orders-2026", kmskeys.New(service, "alias/orders", "orders"))
	for _, doc := range []string{`"4111-1111"`, `{"a":1}`} {
		data, err := writer.Encode(t.Context(), perdure.PayloadInfo{}, []byte(doc))
		if err != nil || bytes.Contains(data, []byte(doc)) {
			t.Fatalf("got %s, error %v", data, err)
		}
		if got, err := reader.Decode(t.Context(), perdure.PayloadInfo{}, data); err != nil || string(got) != doc {
			t.Errorf("got %s, %v, want %s", got, err, doc)
		}
	}
	if service.made != 1 {
		t.Errorf("got %d keys for two payloads", service.made)
	}
}

// An error is non-retryable only if a retry can never succeed.
func TestUnwrapDataKey_errorOfKMS_isNonRetryableIfPermanent(t *testing.T) {
	t.Parallel()
	service := newPaper()
	ours := kmskeys.New(service, "alias/orders", "orders")
	_, wrapped, err := ours.GenerateDataKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	final := func(err error) bool {
		marked, ok := errors.AsType[interface {
			error
			NonRetryable() bool
		}](err)
		return ok && marked.NonRetryable()
	}
	if _, err := kmskeys.New(service, "alias/orders", "another hub").UnwrapDataKey(t.Context(), wrapped); !final(err) {
		t.Errorf("a key of another hub: got error %v", err)
	}
	service.fails = &types.DisabledException{Message: aws.String("disabled")}
	if _, err := ours.UnwrapDataKey(t.Context(), wrapped); err == nil || final(err) {
		t.Errorf("a key that is disabled: got error %v", err)
	}
	if _, _, err := ours.GenerateDataKey(t.Context()); !errors.Is(err, service.fails) {
		t.Errorf("a key that is disabled: got error %v", err)
	}
}
