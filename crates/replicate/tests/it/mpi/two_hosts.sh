#!/bin/sh
# Runs a command on the first of two "hosts", host0 and host1: network namespaces on a bridge, each with its own host name, so that MPI
# takes them for two machines and uses TCP. Must run as root in separate namespaces for mounts, network and processes; everything
# disappears with the last process in them:
#
#     unshare [--user --map-root-user] --mount --net --pid --fork --kill-child --mount-proc sh two_hosts.sh COMMAND...
#
# Ends with the command's status; the last line of output says how many bytes the second host has sent.
set -e
here=$(dirname "$(readlink -f "$0")")

# Names of network namespaces are files, and so is the memory that MPI shares between its processes, named by host and process: both go into
# folders that no other process sees.
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
mkdir /run/netns /run/tmp
export TMPDIR=/run/tmp
ip link add bridge type bridge
ip link set bridge up
for i in 0 1; do
    ip netns add host$i
    ip link add port$i type veth peer name eth0 netns host$i
    ip link set port$i master bridge up
    ip -n host$i link set lo up
    ip -n host$i address add 10.77.0.$((i + 1))/24 dev eth0
    ip -n host$i link set eth0 up
done

# Open MPI reaches the hosts through a script instead of ssh, and uses the network between them, nothing else.
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="sh $here/agent.sh" OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0

# FAULT=silent or FAULT=lost, and WHEN=FILE: once that file exists, the second host's network link is cut, or all its processes are killed.
[ -z "$FAULT" ] || (
    until [ -e "$WHEN" ]; do sleep 0.05; done
    case $FAULT in
    silent) ip link set port1 down ;;
    lost) ip netns pids host1 | xargs kill -9 ;;
    esac
) &

status=0
ip netns exec host0 unshare --uts sh -c 'hostname host0; exec "$@"' sh "$@" || status=$?
echo "the second host sent $(sed -n 's/^ *port1: *\([0-9]*\).*/\1/p' /proc/net/dev) bytes"
exit $status
