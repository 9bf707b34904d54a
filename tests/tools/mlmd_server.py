"""The gRPC service of ML Metadata on SQLite: the program of Kubeflow Pipelines' Deployment, from its wheel.

    mlmd_server.py HOST:PORT FILE

The wheel holds the store as a C++ library without a server. This runs in an environment with `ml-metadata`, not in that
of the tests.
"""

import sys
import threading
from concurrent import futures

import grpc
from ml_metadata.metadata_store.pywrap.metadata_store_extension import metadata_store as library
from ml_metadata.proto import metadata_store_pb2, metadata_store_service_pb2

SERVICE = metadata_store_service_pb2.DESCRIPTOR.services_by_name["MetadataStoreService"]
CODES = {code.value[0]: code for code in grpc.StatusCode}
CREATING = 3  # ConnectionMode.READWRITE_OPENCREATE


def main(address: str, file: str) -> None:
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = file
    config.sqlite.connection_mode = CREATING
    options = metadata_store_pb2.MigrationOptions()
    store = library.CreateMetadataStore(config.SerializeToString(), options.SerializeToString())
    lock = threading.Lock()  # the library's store is for one caller at a time

    def handler(name: str) -> grpc.RpcMethodHandler:
        function = getattr(library, name, None)

        def call(request: bytes, context: grpc.ServicerContext) -> bytes:
            if function is None:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, name)
            with lock:
                response, message, code = function(store, request)[:3]
            if code:
                text = message.decode() if isinstance(message, bytes) else message
                context.abort(CODES.get(code, grpc.StatusCode.UNKNOWN), text)
            return response

        return grpc.unary_unary_rpc_method_handler(call)

    server = grpc.server(futures.ThreadPoolExecutor(8))
    methods = {method.name: handler(method.name) for method in SERVICE.methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, methods),))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
