// registrar tells the kubelet where a CSI driver listens: `registrar DRIVER CSI_SOCKET REGISTRATION_SOCKET`.
// Upstream's node-driver-registrar does the same with health checks; it is not published as a module.
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type server struct {
	registration.UnimplementedRegistrationServer
	driver, socket string
}

func (s server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: s.driver, Endpoint: s.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (s server) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: registrar DRIVER CSI_SOCKET REGISTRATION_SOCKET")
	}
	driver, socket, own := os.Args[1], os.Args[2], os.Args[3]
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer()
	registration.RegisterRegistrationServer(grpcServer, server{driver: driver, socket: socket})
	log.Fatal(grpcServer.Serve(listener))
}
