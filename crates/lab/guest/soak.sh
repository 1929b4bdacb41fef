# Soaks locks for SOAK seconds. Rounds of the kernel's locktorture follow each other, for each word
# of RUNS: LOCK:TYPE. Each word of KINDS disturbs them at random times, in a process of its own.
# All random numbers follow from SEED.
. /lockworks/functions.sh
. /lockworks/plan

seconds_up() {
	cut -d . -f 1 /proc/uptime
}

is_over() {
	[ "$(seconds_up)" -ge "$end" ]
}

# Sets `random` to the next random number from 0 to $1 - 1.
next() {
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	random=$((seed / 65536 % $1))
}

# Sleeps for a random time up to $1 tenths of a second.
sleep_up_to() {
	next "$1"
	sleep "$((random / 10)).$((random % 10))"
}

count() {
	echo $#
}

# The host suspends a virtual CPU. The guest's time goes on.
suspend_cpus() {
	while ! is_over; do
		sleep_up_to 20
		! is_over || return 0
		next "$(count /sys/devices/system/cpu/cpu[0-9]*)"
		cpu=$random
		next 1000
		tell ask suspend "$cpu" $((random + 1))
	done
}

# The host stops the machine, with its clock, and lets it continue.
stop_machine() {
	while ! is_over; do
		sleep_up_to 100
		! is_over || return 0
		next 2000
		tell ask stop $((random + 1))
	done
}

# The conformance module is loaded, tests a lock of TESTED, and is removed.
test_modules() {
	while ! is_over; do
		sleep_up_to 50
		# shellcheck disable=SC2086 # several names
		set -- $TESTED
		next $#
		shift "$random"
		insmod /lockworks/modules/lockworks_test.ko lock="$1" rounds=100 || {
			tell failed "the kernel did not load the conformance module for $1"
			return 1
		}
		rmmod lockworks_test || {
			tell failed "the kernel did not remove the conformance module for $1"
			return 1
		}
		tell did modules
	done
}

blocks=/sys/devices/system/memory

# Waits until there are $1 blocks of memory, for 30 s at most.
wait_for_blocks() {
	for _ in $(seq 150); do
		[ "$(count "$blocks"/memory[0-9]*)" != "$1" ] || return 0
		sleep 0.2
	done
	return 1
}

# Lets the kernel use the block of memory that it does not use yet, and sets `block` to it.
take_new_block() {
	for block in "$blocks"/memory[0-9]*; do
		if [ "$(cat "$block/state")" = offline ]; then
			echo online_movable >"$block/state"
			return
		fi
	done
	return 1
}

# Lets the kernel give up `block`. It refuses while it cannot move what is there, so it is asked
# again, for 30 s at most.
give_up_block() {
	for _ in $(seq 150); do
		! echo offline >"$block/state" || return 0
		sleep 0.2
	done 2>/dev/null
	return 1
}

# The host adds a block of memory to a node, the kernel uses it, and it is removed again.
add_memory() {
	number=0
	before=$(count "$blocks"/memory[0-9]*)
	while ! is_over; do
		sleep_up_to 30
		next "$(count /sys/devices/system/node/node[0-9]*)"
		node=$random
		number=$((number + 1))
		tell ask plug "$number" "$node"
		wait_for_blocks $((before + 1)) || {
			tell failed "the kernel did not see memory that was added to node $node"
			return 1
		}
		take_new_block || {
			tell failed "the kernel did not use memory that was added to node $node"
			return 1
		}
		[ -e "/sys/devices/system/node/node$node/${block##*/}" ] || {
			tell failed "memory was added to node $node, but the kernel uses it elsewhere"
			return 1
		}
		tell did add-memory
		sleep_up_to 30
		give_up_block || {
			tell failed "the kernel did not give up memory that was added to node $node"
			return 1
		}
		tell ask unplug "$number"
		wait_for_blocks "$before" || {
			tell failed "the kernel did not remove memory that was added to node $node"
			return 1
		}
		tell ask unplugged "$number"
		tell did remove-memory
	done
}

rounds() {
	number=0
	while :; do
		for run in $RUNS; do
			! is_over || return 0
			IFS=: read -r lock type <<-END
				$run
			END
			number=$((number + 1))
			[ -z "$SWITCHING" ] || choose_slow_path "$lock" || {
				tell failed "the kernel did not change its slow path to $lock"
				return 1
			}
			next 2
			switching=$ONOFF
			[ "$random" != 0 ] || switching=
			# shellcheck disable=SC2034 # torture() reads it
			PARAMETERS="$STEADY $switching"
			tell round "$number" "$lock" "$type"
			torture "$type" || return 1
			tell measured
		done
	done
}

insmod /lockworks/modules/torture.ko || {
	tell refused "the kernel cannot load torture.ko"
	exit 1
}
end=$(($(seconds_up) + SOAK))
tell_alive $((SOAK + ${LENGTH%.*}))
# shellcheck disable=SC2153 # both are there
seed=$SEED
for kind in $KINDS; do
	seed=$((seed + 1))
	case $kind in
	cpus) suspend_cpus & ;;
	machine) stop_machine & ;;
	modules) test_modules & ;;
	memory) add_memory & ;;
	esac
	disturbers="$disturbers $!"
done
rounds
status=$?
for disturber in $disturbers; do
	wait "$disturber" || status=1
done
exit $status
