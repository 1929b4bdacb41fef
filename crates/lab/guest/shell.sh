# Runs a shell on the console.
cd /root || exit 1
echo "A shell in the guest; 'exit' ends it."
setsid cttyhack sh -i
exit 0
