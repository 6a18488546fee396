// Package kmskeys has the data keys of codec.Envelope made and unwrapped by AWS KMS.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	keys := kmskeys.New(kms.NewFromConfig(cfg), "alias/orders", "orders")
//	lambdahandler.WithCodec(codec.Envelope("orders-2026", keys))
//
// Functions that encode need kms:GenerateDataKey of the key, and those that decode kms:Decrypt. It is a module of its own, so that no other depends on the
// client of KMS, which adds to a function's binary.
package kmskeys

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/perdure/perdure"
)

// API is the part of KMS that Keys calls. *kms.Client implements it.
type API interface {
	GenerateDataKey(ctx context.Context, in *kms.GenerateDataKeyInput, opts ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(ctx context.Context, in *kms.DecryptInput, opts ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Keys makes and unwraps data keys with a master key. It is safe for concurrent use, as its client is.
type Keys struct {
	client API
	keyID  string
	about  map[string]string
}

// New makes Keys of the key with an id, ARN or alias. What the keys are for, such as the hub's name, is their encryption context: KMS unwraps none that was
// made for something else, and its log says what each was for. It must stay the same for as long as anything is to be read.
//
// A wrapped key names its master key, so that keys of before are unwrapped where the alias has moved on, as long as their master key is there and may be used.
func New(client API, keyID, what string) *Keys {
	return &Keys{client: client, keyID: keyID, about: map[string]string{"perdure": what}}
}

// GenerateDataKey implements codec.KeyProvider.
func (k *Keys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	out, err := k.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &k.keyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: k.about})
	if err != nil {
		return nil, nil, fmt.Errorf("kmskeys: key %s: %w", k.keyID, err)
	}
	return out.Plaintext, out.CiphertextBlob, nil
}

// UnwrapDataKey implements codec.KeyProvider. What KMS says of the wrapped key itself stays true, and blocks who needs it; what it says of the master key, or of the
// caller's rights, somebody may put right, and is tried again.
func (k *Keys) UnwrapDataKey(ctx context.Context, wrapped []byte) ([]byte, error) {
	out, err := k.client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: wrapped, EncryptionContext: k.about})
	if err == nil {
		return out.Plaintext, nil
	}
	err = fmt.Errorf("kmskeys: a data key of %s: %w", k.keyID, err)
	if _, invalid := errors.AsType[*types.InvalidCiphertextException](err); invalid {
		return nil, perdure.NonRetryable(err)
	}
	return nil, err
}
