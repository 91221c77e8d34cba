#!/bin/sh
# mpirun calls this instead of ssh: `agent.sh [-x] HOST COMMAND...`, for the hosts that two_hosts.sh has created.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
