// Package kmskeys generates and unwraps the data keys of codec.Envelope with AWS KMS.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	keys := kmskeys.New(kms.NewFromConfig(cfg), "alias/orders", "orders")
//	lambdahandler.WithCodec(codec.Envelope("orders-2026", keys))
//
// Functions that encode need the permission kms:GenerateDataKey for the key, and functions that decode need
// kms:Decrypt. The package is a separate module, because the KMS client makes a function's binary larger.
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
	GenerateDataKey(
		ctx context.Context, in *kms.GenerateDataKeyInput, opts ...func(*kms.Options),
	) (*kms.GenerateDataKeyOutput, error)
	Decrypt(ctx context.Context, in *kms.DecryptInput, opts ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Keys generates and unwraps data keys with a master key. It is safe for concurrent use if its client is safe for
// concurrent use.
type Keys struct {
	client API
	keyID  string
	about  map[string]string
}

// New returns Keys for the master key keyID, which is a key ID, an ARN or an alias. what is the purpose of the keys,
// such as the hub's name. KMS uses what as the encryption context, logs it, and unwraps only keys with the same
// context. Do not change it while data that was encoded with the keys is stored.
//
// A wrapped key contains the ID of its master key. If you change the alias, KMS still unwraps earlier keys while their
// master key is enabled.
func New(client API, keyID, what string) *Keys {
	return &Keys{client: client, keyID: keyID, about: map[string]string{"perdure": what}}
}

// GenerateDataKey implements codec.KeyProvider.
func (k *Keys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	out, err := k.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &k.keyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: k.about,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("kmskeys: key %s: %w", k.keyID, err)
	}
	return out.Plaintext, out.CiphertextBlob, nil
}

// UnwrapDataKey implements codec.KeyProvider. If KMS reports that the wrapped key is invalid, the error is marked with
// perdure.NonRetryable, and instances that need the key are blocked. Other errors, such as a disabled master key or a
// missing permission, are retried, because an operator can fix them.
func (k *Keys) UnwrapDataKey(ctx context.Context, wrapped []byte) ([]byte, error) {
	out, err := k.client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: wrapped, EncryptionContext: k.about})
	if err == nil {
		return out.Plaintext, nil
	}
	err = fmt.Errorf("kmskeys: unwrap a data key of %s: %w", k.keyID, err)
	if _, invalid := errors.AsType[*types.InvalidCiphertextException](err); invalid {
		return nil, perdure.NonRetryable(err)
	}
	return nil, err
}
