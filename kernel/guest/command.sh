# Runs a command of the user's; what it says goes beside the console.
. /lockworks/functions.sh
cd /root || exit 1
reset_counters
sh /lockworks/command >/dev/ttyS1 2>&1 </dev/null
status=$?
tell_counters
exit $status
