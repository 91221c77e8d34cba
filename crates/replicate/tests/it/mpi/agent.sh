#!/bin/sh
# What mpirun calls instead of ssh: `agent.sh [-x] HOST COMMAND...`, for hosts that two_hosts.sh has made.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
