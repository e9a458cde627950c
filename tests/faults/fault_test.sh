#!/bin/sh
# Lets each of the first and the last worker fail in each phase of a training, and looks at how the run ends:
#     sh fault_test.sh <throw|exit|vanish|quit|abort|kill|stop|absent|stuck|launcher|non_finite|again> <fault_program> [<mpirun>]
# Within the timeout and 5 s of the fault, with an exit code that is not 0, the cause told once and with its rank, and no process left.
# vanish: std::_Exit(0), quit: std::_Exit(3), abort: std::abort(), each within a step; absent: stopped before MPI_Init; stuck: MPI_Finalize never returns; launcher: not a worker but mpirun is killed. With the path of an mpirun the workers are 3 MPI processes, without it 3 threads.
set -eu

fault=$1
program=$2
mpirun=${3:-}
limit=8 # the program's timeout is 3 s

folder=$(mktemp -d)
token=lockstep-fault-test-$$

# Every process of a run has inherited the token, also those of the launcher.
processes_left() {
    grep -lF "$token" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 || true
}

clean_up() {
    for process in $(processes_left); do kill -KILL "$process" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap clean_up EXIT

backend=threads
mpi=""
if [ -n "$mpirun" ]; then
    backend=mpi
    case $("$mpirun" --version 2>&1) in
        *"Open MPI"* | *OpenRTE*) mpi=openmpi ;;
        *HYDRA*) mpi=mpich ;;
        *)
            echo "fault_test.sh: $mpirun is neither Open MPI's nor MPICH's" >&2
            exit 1
            ;;
    esac
    # What Open MPI asks for as root, in containers and with more processes than cores.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
    export OMPI_MCA_btl_vader_backing_directory="$folder" # not /dev/shm, where killed processes leave files
fi

fail() {
    echo "fault_test.sh: $fault of worker $worker in $phase: $1. The output:" >&2
    cat "$folder/output" >&2
    exit 1
}

now() {
    read -r seconds rest </proc/uptime
    echo "$seconds"
}

at_most() {
    awk "BEGIN { exit !($1 <= $2) }"
}

# Sets status, end; leaves the output and the time of the fault in the folder.
run() {
    rm -f "$folder/time"
    set -- "$program" "$backend" "$fault" "$worker" "$phase" "$folder/time"
    [ -z "$mpi" ] || set -- "$mpirun" -n 3 "$@"
    status=0
    LOCKSTEP_FAULT_TEST=$token timeout -s KILL 60 "$@" </dev/null >"$folder/output" 2>&1 || status=$?
    end=$(now)
}

expect_once() {
    count=$(grep -cE -- "$1" "$folder/output") || true
    [ "$count" -eq 1 ] || fail "expected one line with \"$1\", got $count"
}

expect_nobody_else() {
    ! grep -E "^error: |rank [0-9]+ of 3: " "$folder/output" | grep -v "^main got: " | grep -qvE "rank $worker of 3: " ||
        fail "another worker is named"
}

# Of Lockstep's own lines; Open MPI has lines of its own.
expect_named_once() {
    count=$(grep -v "^main got: " "$folder/output" | grep -cF "rank $worker of 3: ") || true
    [ "$count" -eq 1 ] || fail "the worker is named $count times"
}

expect_nobody_left() {
    while left=$(processes_left) && [ -n "$left" ]; do
        at_most "$(now)" "$1" || fail "still there: $(echo "$left" | tr '\n' ' ')"
        sleep 0.05
    done
}

expect_failure() {
    [ "$status" -ne 0 ] || fail "the exit code is 0"
    begin=$(cat "$folder/time" 2>/dev/null) || fail "the fault never happened"
    at_most "$end" "$begin + $limit" || fail "the run ended at $end, but the fault was at $begin"
    expect_nobody_left "$begin + $limit"
    expect_once "$1"
    printf '%s of worker %s in %s: %s s, exit code %s: %s\n' "$fault" "$worker" "$phase" "$(echo "$end $begin" | awk '{ print $1 - $2 }')" \
        "$status" "$(grep -E -- "$1" "$folder/output")"
}

# Kills mpirun with the given signal while a worker is busy: the others must not live on, nor claim that they were killed.
run_without_launcher() {
    rm -f "$folder/time"
    LOCKSTEP_FAULT_TEST=$token "$mpirun" -n 3 "$program" mpi sleep 2 step "$folder/time" </dev/null >"$folder/output" 2>&1 &
    launcher=$!
    begin=$(now)
    until [ -s "$folder/time" ]; do
        at_most "$(now)" "$begin + 20" || fail "the training did not begin"
        sleep 0.05
    done
    kill "-$1" $launcher
    begin=$(now)
    status=0
    wait $launcher 2>/dev/null || status=$?
    # MPICH 4.0's mpiexec itself sometimes exits with 0 after SIGTERM: any program that ends with 143 shows it.
    [ "$mpi" = mpich ] && [ "$1" = TERM ] || [ "$status" -ne 0 ] || fail "the exit code is 0"
    expect_nobody_left "$begin + $limit"
    ! grep -q '^error: ' "$folder/output" || fail "somebody claims an error"
    printf 'launcher ended by SIG%s: nobody left after %s s, exit code %s\n' "$1" "$(echo "$(now) $begin" | awk '{ print $1 - $2 }')" "$status"
}

# What the user must be told.
cause() {
    case $fault in
        throw) echo "^error: rank $worker of 3: injected fault" ;;
        exit) echo "rank $worker of 3: called exit before the body of launch had returned" ;;
        vanish)
            case $mpi in
                openmpi) echo "has exited due to process rank $worker with PID" ;;
                *) echo "^error: rank $worker of 3: ended without finalising MPI" ;;
            esac
            ;;
        quit)
            # Open MPI's names are [[job,1],rank].
            case $mpi in
                openmpi) echo "Process name: \[\[[0-9]+,1\],$worker\]" ;;
                *) echo "^error: rank $worker of 3: ended with exit code 3, by _Exit or the like" ;;
            esac
            ;;
        abort)
            case $mpi in
                openmpi) echo "process rank $worker with PID .* exited on signal 6" ;;
                *) echo "^error: rank $worker of 3: killed by signal 6" ;;
            esac
            ;;
        kill)
            # Open MPI's mpirun knows it, and says so.
            case $mpi in
                openmpi) echo "process rank $worker with PID .* exited on signal 9" ;;
                *) echo "^error: rank $worker of 3: killed by signal 9" ;;
            esac
            ;;
        absent) echo "rank [0-2] of 3: MPI_Init did not return within 3 s: not all processes have come to it" ;;
        stop)
            # Where all have met for the last time.
            case $phase in
                init) seen="setup" ;;
                step) seen="epoch 2, step 1" ;;
                reduction) seen="epoch 2, step 2" ;;
                evaluation) seen="epoch 1, step 3" ;;
            esac
            echo "^error: rank $worker of 3: did not come to .* within 3 s; it was last seen in $seen, while"
            ;;
    esac
}

case $fault in
    throw | exit | vanish | quit | abort | kill | stop | absent)
        case $fault in
            vanish | quit | abort) phases=step ;;
            absent) phases=start ;;
            *) phases="init step reduction evaluation" ;;
        esac
        for phase in $phases; do
            for worker in 0 2; do
                run
                expect_failure "$(cause)"
                [ "$fault" != absent ] || continue # who it is nobody can know
                expect_nobody_else
                [ "$mpi" = openmpi ] || expect_named_once
            done
        done
        ;;
    stuck)
        phase="MPI_Finalize"
        worker=any
        begin=$(now)
        run
        text="rank [0-2] of 3: MPI_Finalize did not return within 10 s, though all processes had come to it"
        told=$(grep -cE "$text" "$folder/output") || true
        if [ "$mpi" = mpich ]; then # supervised, each ends with the exit code of its own
            [ "$status" -eq 7 ] || fail "main returned 7, and the exit code is $status"
            [ "$told" -eq 3 ] || fail "expected one line of each worker, got $told"
        else
            [ "$status" -ne 0 ] || fail "the exit code is 0"
            [ "$told" -ge 1 ] || fail "nobody says why"
        fi
        at_most "$end" "$begin + 20" || fail "the run took from $begin to $end"
        expect_nobody_left "$end + 1"
        echo "ended after $(echo "$end $begin" | awk '{ print $1 - $2 }') s, exit code $status, told by $told of 3"
        ;;
    launcher)
        phase=step
        worker=nobody
        for signal in KILL TERM; do run_without_launcher $signal; done
        ;;
    non_finite)
        phase=step
        worker=any
        run
        [ "$status" -eq 1 ] || fail "the exit code is $status"
        text="rank [0-9]* of 3: the loss is nan in epoch 1, step 2: "
        expect_once "^error: $text"
        workers=3
        [ -n "$mpi" ] || workers=1
        heard=$(grep -E "^main got: $text" "$folder/output" | sort | uniq -c | awk '{ print $1 }')
        [ "$heard" = $workers ] || fail "the workers did not stop with the same error"
        expect_nobody_left "$end + 1"
        ;;
    again)
        phase="every phase"
        worker=any
        run
        [ "$status" -eq 0 ] || fail "the exit code is $status"
        grep -qF "trained after 15 failures, 3 replicas" "$folder/output" || fail "no training after failures"
        expect_nobody_left "$end + 1"
        ;;
    *)
        echo "fault_test.sh: \"$fault\" is none of throw, exit, vanish, quit, abort, kill, stop, absent, stuck, launcher, non_finite, again" >&2
        exit 2
        ;;
esac
