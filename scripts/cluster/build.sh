#!/bin/sh
# Builds what a cluster of Kubernetes is made of from its Go modules, once, and prints the directory where it is.
#
#   scripts/cluster/build.sh
#
# The Go toolchain and proxy.golang.org are all it needs: a quarter of an hour on two cores, 5 GB of module and build caches
# (Go's own, `go clean -cache -modcache` gives them back), 500 MB kept below the user's cache directory. A directory is named
# by what was asked for, so that another version is built beside it.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh

kubernetes=v1.30.14
# Modules of Kubernetes' own repository, one for each directory of `staging`, have versions of their own. That of kube-proxy
# is not in the checksum database; it holds types alone, and those of another patch release are the same.
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
has go || fail "there is no Go, which the cluster's programs are built with" "install Go 1.22 or newer (https://go.dev/dl)"
mkdir -p "$home/bin" "$home/sources"
export GOFLAGS="-mod=mod -buildvcs=false" GOWORK=off CGO_ENABLED=0

# Not a module with `replace` to directories that its archive does not have (staging, vendor): each is a module by itself.
tree=$home/sources/kubernetes
if [ ! -e "$tree/ready" ]; then
  say "Fetching the modules of Kubernetes $kubernetes." >&2
  found=$(cd / && go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -d "$found" ] || fail "the module k8s.io/kubernetes $kubernetes could not be had"
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
# Without the clients of clouds, which are a third of what would be compiled.
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
