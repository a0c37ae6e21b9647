// Command facts writes what a protobuf decoder must know of the Kubernetes types, read by
// reflection off their Go structs: field numbers, JSON names, the types' names, and which fields are
// pointers or are left out of JSON when empty. The .proto files do not say the latter three.
//
//	go run ./facts > ../../../xtask/inputs/protobuf.json
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"neaptide.dev/protobuf-fixtures/internal/kinds"
)

// field is one field of a message. Type is a scalar word or the name of a message.
type field struct {
	Number   int    `json:"n"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Pointer  bool   `json:"pointer,omitempty"`
	Omit     bool   `json:"omitempty,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Map      bool   `json:"map,omitempty"`
	Inline   bool   `json:"inline,omitempty"`
	Go       string `json:"go"`
	OmitZero bool   `json:"omitzero,omitempty"`
}

type facts struct {
	Kinds    map[string]string  `json:"kinds"`
	Messages map[string][]field `json:"messages"`
}

func main() {
	scheme, err := kinds.Scheme()
	if err != nil {
		log.Fatal(err)
	}
	out := facts{Kinds: map[string]string{}, Messages: map[string][]field{}}
	for gvk, ty := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") || isMeta(ty) {
			continue
		}
		out.Kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = out.message(ty)
	}
	out.message(reflect.TypeFor[meta.DeleteOptions]())
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}

func isMeta(ty reflect.Type) bool { return strings.HasSuffix(ty.PkgPath(), "meta/v1") }

// name is the type's name as OpenAPI spells it: io.k8s.api.core.v1.Pod.
func name(ty reflect.Type) string {
	path := strings.TrimPrefix(ty.PkgPath(), "k8s.io/")
	return "io.k8s." + strings.ReplaceAll(path, "/", ".") + "." + ty.Name()
}

func (f *facts) message(ty reflect.Type) string {
	id := name(ty)
	if _, seen := f.Messages[id]; seen {
		return id
	}
	f.Messages[id] = []field{}
	fields := []field{}
	if ty.Kind() == reflect.Slice { // ExtraValue and its like: a list behind a message.
		fields = append(fields, field{Number: 1, Name: "items", Type: f.word(ty.Elem()), Repeated: true})
	} else {
		for i := range ty.NumField() {
			if made, ok := f.field(ty.Field(i)); ok {
				fields = append(fields, made)
			}
		}
	}
	f.Messages[id] = fields
	return id
}

func (f *facts) field(from reflect.StructField) (field, bool) {
	tag, ok := from.Tag.Lookup("protobuf")
	if !ok || tag == "-" {
		return field{}, false
	}
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	if err != nil {
		log.Fatalf("%s: %v", from.Name, err)
	}
	jsonName, options, _ := strings.Cut(from.Tag.Get("json"), ",")
	made := field{
		Number: number, Name: jsonName, Omit: strings.Contains(options, "omitempty"),
		OmitZero: strings.Contains(options, "omitzero"),
		Inline:   jsonName == "" && from.Anonymous,
	}
	ty := from.Type
	if ty.Kind() == reflect.Pointer {
		made.Pointer, ty = true, ty.Elem()
	}
	made.Go = ty.String()
	switch {
	case ty.Kind() == reflect.Map:
		made.Map, ty = true, ty.Elem()
	case ty.Kind() == reflect.Slice && ty.Elem().Kind() != reflect.Uint8 && !isMessage(ty):
		made.Repeated, ty = true, ty.Elem()
	}
	made.Type = f.word(ty)
	return made, true
}

// isMessage tells a list that is a message of its own (ExtraValue) from a plain repeated field.
// The tags cannot be asked: several lists are tagged "opt".
func isMessage(ty reflect.Type) bool {
	_, ok := reflect.PointerTo(ty).MethodByName("Marshal")
	return ok
}

func (f *facts) word(ty reflect.Type) string {
	switch ty.Kind() {
	case reflect.Pointer:
		return f.word(ty.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if ty.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return f.message(ty)
	case reflect.Struct:
		return f.message(ty)
	}
	panic(fmt.Sprintf("no protobuf form for %v", ty))
}
