# Runs the user's command or workload. Its output goes to the second serial line.
. /lockworks/functions.sh
. /lockworks/plan
cd /root || exit 1
[ -z "$LENGTH" ] || tell_alive "$LENGTH"
SECONDS_EACH=$LENGTH WORKLOAD=$WORKLOAD sh /lockworks/command >"$CHANNEL" 2>&1 </dev/null
