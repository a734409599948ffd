#!/bin/sh
# Builds the programs of a Kubernetes cluster from their Go modules, once, and prints the directory that contains them.
#
#   scripts/cluster/build.sh
#
# It needs the Go toolchain, proxy.golang.org, a quarter of an hour on two cores, and 5 GB for Go's module and build caches
# (`go clean -cache -modcache` frees them). It keeps 500 MB below the user's cache directory, in one directory for each set of
# versions.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh

kubernetes=v1.30.14
# Kubernetes publishes each directory of `staging` as a module with a separate version. That of kube-proxy is not in the
# checksum database. It contains only types, which are equal in another patch release.
staging=v0.${kubernetes#v1.}
proxy=v0.30.4
kwok=v0.6.1
programs="kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl"

PATH="$PATH:/usr/local/go/bin"
hash=$(echo "$kubernetes $staging $proxy $kwok $(uname -m)" | sha256sum | cut -c1-16)
home=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tactus/cluster/$hash
if [ -e "$home/built" ]; then
  say "$home"
  exit 0
fi
has go || fail "Go is not installed: building the cluster's programs needs it" "install Go 1.22 or newer (https://go.dev/dl)"
mkdir -p "$home/bin" "$home/sources"
export GOFLAGS="-mod=mod -buildvcs=false" GOWORK=off CGO_ENABLED=0

# The module's `replace` lines lead to directories that its archive lacks (staging, vendor): use the published modules instead.
tree=$home/sources/kubernetes
if [ ! -e "$tree/ready" ]; then
  say "Fetching the modules of Kubernetes $kubernetes." >&2
  found=$(cd / && go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -d "$found" ] || fail "the module k8s.io/kubernetes $kubernetes could not be fetched"
  rm -rf "$tree"
  cp -r "$found" "$tree"
  chmod -R u+w "$tree"
  (
    cd "$tree"
    rm -rf vendor go.work go.work.sum
    for sample in sample-apiserver sample-cli-plugin sample-controller; do
      go mod edit "-droprequire=k8s.io/$sample" "-dropreplace=k8s.io/$sample"
    done
    for module in $(sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' go.mod); do
      version=$staging
      [ "$module" != k8s.io/kube-proxy ] || version=$proxy
      go mod edit "-replace=$module=$module@$version"
    done
  )
  touch "$tree/ready"
fi

version="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
version="$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=30"
# Without the clients of clouds: they are a third of the code.
for program in $programs; do
  [ ! -e "$home/bin/$program" ] || continue
  say "Building $program $kubernetes." >&2
  (cd "$tree" && nice -n 10 go build -p 2 -tags providerless -trimpath -ldflags "-s -w $version" -o "$home/bin/$program.part" "./cmd/$program") >&2
  mv "$home/bin/$program.part" "$home/bin/$program"
done
if [ ! -e "$home/bin/kwok" ]; then
  say "Building kwok $kwok." >&2
  (cd / && GOFLAGS=-buildvcs=false GOBIN="$home/bin" nice -n 10 go install -p 2 -trimpath -ldflags "-s -w" "sigs.k8s.io/kwok/cmd/kwok@$kwok") >&2
fi
rm -rf "$home/sources"
touch "$home/built"
say "$home"
