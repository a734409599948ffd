#!/bin/sh
# Runs the role of contrib/ansible on this machine, with its results in a scratch directory: scripts/package/test-role.sh TARBALL
set -eu
cd "$(dirname "$0")/../.."
tarball=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The role must replace this older program.
mkdir -p "$scratch/prefix/bin"
printf '#!/bin/sh\nexit 7\n' >"$scratch/prefix/bin/tactus"
chmod 755 "$scratch/prefix/bin/tactus"
cat >"$scratch/play.yml" <<END
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [tactus]
END
play() {
  ANSIBLE_ROLES_PATH=contrib/ansible/roles ANSIBLE_LOCALHOST_WARNING=false ansible-playbook -i localhost, "$scratch/play.yml" \
    -e "tactus_package=$tarball" -e "tactus_prefix=$scratch/prefix" -e "tactus_bundles=$scratch/bundles" \
    -e "tactus_results=$scratch/results" -e "ansible_python_interpreter={{ ansible_playbook_python }}" -e "$1" </dev/null
}
play '{"tactus_arguments": ["--only=host", "--duration=1s", "--max=10s"], "tactus_inconclusive_fails": false}' >"$scratch/said" ||
  { cat "$scratch/said" && exit 1; }
grep -q '<testsuites' "$scratch/results/localhost/junit.xml"
[ "$(stat -c %s "$scratch/results/localhost/report.html")" -gt 10000 ]
"$scratch/prefix/bin/tactus" --version
echo "  installed, measured; the JUnit file and the HTML report exist"
# An error of tactus must also fail the play.
if play '{"tactus_arguments": ["--only=nowhere"]}' >"$scratch/said"; then cat "$scratch/said" && exit 1; fi
grep -q 'nowhere' "$scratch/said" || { cat "$scratch/said" && exit 1; }
echo "  an unknown environment fails the play, and the play names it"
