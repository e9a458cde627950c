#!/bin/sh
# The big example on two hosts with two workers each: sh two_hosts_test.sh <fashion_mnist, built with MPI>
# The hosts are two network namespaces of this machine, with names of their own, a cable between them and a stand-in for ssh. Exit
# code 0, 1 (failed) or 77 (the machine allows no namespaces). All processes end with the process namespace that holds them.
set -eu

program=$1

skip() {
    echo "skipped: $1"
    exit 77
}
fail() {
    echo "FAILED: $1" >&2
    exit 1
}

if [ "${2:-}" != inside ]; then
    for tool in unshare nsenter ip; do
        command -v "$tool" >/dev/null || skip "there is no $tool (Debian: util-linux, iproute2)"
    done
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="--map-root-user"
    namespaces="$as_root --net --uts --mount --pid --fork --kill-child --mount-proc"
    # shellcheck disable=SC2086 # words
    why=$(unshare $namespaces sh -c 'hostname host-a && ip link add cable type veth peer name far-end && mount -t sysfs sysfs /sys' 2>&1) ||
        skip "namespaces or virtual cables are not allowed here: $why"
    # shellcheck disable=SC2086 # words
    exec unshare $namespaces sh "$0" "$program" inside
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# host-b is what this process keeps running; host-a is where we are.
hostname host-a
printf '127.0.0.1 localhost\n10.77.0.1 host-a\n10.77.0.2 host-b\n' >"$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
unshare --net --uts --mount sleep 1000 &
host_b=$!
on_b() { nsenter -t "$host_b" --net --uts --mount -- "$@"; }
until [ "$(readlink "/proc/$host_b/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.05; done
on_b hostname host-b
ip link add cable type veth peer name cable netns "$host_b"
# $1: this host's address, $2: runs a command there. /sys shows the network of whoever mounted it, and MPI looks there.
connect() {
    $2 mount -t sysfs sysfs /sys
    $2 ip address add "$1/24" dev cable
    $2 ip link set lo up
    $2 ip link set cable up
}
connect 10.77.0.1 ""
connect 10.77.0.2 on_b
for host in "" on_b; do
    until [ "$($host cat /sys/class/net/cable/operstate)" = up ]; do sleep 0.05; done
done

# As ssh does it: nothing of the environment goes along.
cat >"$folder/remote-shell" <<AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
[ "\$1" = host-b ] || { echo "remote-shell: there is no host \$1" >&2 && exit 255; }
shift
echo "\$*" >>"$folder/started"
exec nsenter -t $host_b --net --uts --mount -- env -i PATH="\$PATH" HOME="\$HOME" USER="\${USER:-}" sh -c "\$*"
AGENT
chmod +x "$folder/remote-shell"
export OMPI_MCA_plm_rsh_agent="$folder/remote-shell" HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$folder/remote-shell"
# The two hosts share their cores, which neither MPI can know, and their memory, over which UCX (MPICH's transport) would go.
export OMPI_MCA_mpi_yield_when_idle=1 UCX_TLS=tcp,self
# A job of the machine's resource manager, or another launcher, has no say in here.
for variable in $(env | sed -n 's/^\(SLURM_[A-Z0-9_]*\|PMI_[A-Z0-9_]*\|PMIX_[A-Z0-9_]*\|OMPI_COMM_[A-Z0-9_]*\)=.*/\1/p'); do unset "$variable"; done

# call <seconds> <last line, a pattern> <argument>...: the program's output in $folder/out and err, its exit code in $code.
call() {
    seconds=$1
    last_line=$2
    shift 2
    code=0
    timeout "$seconds" "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null || code=$?
    # A fault of MPICH over UCX on several hosts (pmodels/mpich#6596), not of the program, which has done all its work.
    if [ "$code" -eq 124 ] && [ "$mpich" = yes ] && grep -q "$last_line" "$folder/out"; then
        echo "note: MPICH did not return from MPI_Finalize"
        code=0
    fi
}
show() { tail -n 40 "$folder/out" "$folder/err" | tr '\r' '\n' | tail -n 80 >&2; }
hashes() { grep '^rank [0-9]* *0x' "$folder/out"; }
sent() { awk '$1 == "cable:" { print $10 }' /proc/net/dev; }

mpich=no
ldd "$program" | grep -q libmpich && mpich=yes

call 20 '^OK: ' --address host-a,host-b -n 4 --preflight
show
[ "$code" -eq 0 ] || fail "--preflight: exit code $code"
grep -q '^OK: 4 workers on 2 hosts (host-a: 2, host-b: 2)' "$folder/out" || fail "--preflight did not find 2 hosts"
[ -s "$folder/started" ] || fail "nothing was started on host-b"

before=$(sent)
call 90 '^rank 3  *0x' --address host-a:2,host-b:2 --smoke-test --print-hash
[ "$code" -eq 0 ] || { show && fail "training on two hosts: exit code $code"; }
on_two_hosts=$(hashes)
bytes=$(($(sent) - before))
grep -q '4 workers, backend mpi' "$folder/out" || { show && fail "these were not 4 workers"; }
# Whatever way the sums take, each host sends at least one number for each of theirs: 300 steps of 476490 floats.
least=$((300 * 476490 * 4))
[ "$bytes" -ge "$least" ] || fail "host-a sent $bytes bytes over the cable, expected at least $least"
echo "host-a sent $bytes bytes over the cable (at least $least were to be expected)"

call 60 none --backend threads -n 4 --smoke-test --print-hash
[ "$code" -eq 0 ] || { show && fail "training with threads: exit code $code"; }
[ "$(hashes)" = "$on_two_hosts" ] || fail "parameters on two hosts and on threads differ: $on_two_hosts; $(hashes)"
echo "the parameters are those of 4 threads: $(hashes | head -n 1)"

call 30 none --address host-a:1,host-c:1 --preflight
[ "$code" -eq 1 ] && grep -q '^host host-c: ' "$folder/out" || { show && fail "--preflight with a host that is not there"; }

# A worker of host-b that is stopped: everybody ends, and the text says who.
timeout 90 "$program" --address host-a:2,host-b:2 --smoke-test --epochs 1000 --timeout 5 >"$folder/out" 2>"$folder/err" </dev/null &
job=$!
on_host_b() { # the workers there, by their host name: the processes with another network
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" = "$(readlink -f "$program")" ] || continue
        [ "$(readlink "$process/ns/net")" = "$(readlink "/proc/$host_b/ns/net")" ] && echo "${process#/proc/}"
    done
    return 0
}
for _ in $(seq 200); do
    grep -q '4 workers, backend mpi' "$folder/out" && break
    sleep 0.1
done
sleep 2
victim=$(on_host_b | sort -n | tail -n 1) # the youngest: under MPICH a worker is the child of its supervisor
[ -n "$victim" ] || { show && fail "there is no worker on host-b to stop"; }
kill -STOP "$victim"
begin=$(date +%s)
code=0
wait "$job" || code=$?
took=$(($(date +%s) - begin))
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || { show && fail "a stopped worker: exit code $code"; }
[ "$took" -le 10 ] || { show && fail "a stopped worker: it took $took s"; }
[ "$(grep -c '^error: ' "$folder/err")" -eq 1 ] || { show && fail "a stopped worker: one error was expected"; }
grep -q '^error: .*rank [23]' "$folder/err" || { show && fail "a stopped worker: nobody says which"; }
sleep 1
[ -z "$(on_host_b)" ] || fail "workers are left behind on host-b: $(on_host_b)"
echo "a stopped worker ended the run in $took s: $(grep '^error: ' "$folder/err")"
