// Command kubectl is the ordinary kubectl, built from its published module, for machines that
// have none. The tests drive `neap` with it.
package main

import (
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	kubectl := cmd.NewDefaultKubectlCommand()
	kubectl.SilenceErrors = true
	kubectl.SilenceUsage = true
	util.CheckErr(kubectl.Execute())
}
